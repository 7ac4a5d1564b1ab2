class ApplicationController < ActionController::API
  wrap_parameters false

  rescue_from ActiveRecord::RecordNotFound do
    render json: { error: "Not found" }, status: :not_found
  end

  private

  def render_invalid(errors)
    render json: { errors: errors }, status: :unprocessable_entity
  end
end
