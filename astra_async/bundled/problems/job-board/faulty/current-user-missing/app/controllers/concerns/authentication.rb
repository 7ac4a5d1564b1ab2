# Finds out who sends a request, by the token in its header.
module Authentication
  extend ActiveSupport::Concern

  private

  def require_user(role)
    if current_user.nil?
      render json: { error: "Unauthorized" }, status: :unauthorized
    elsif current_user.role != role
      render json: { error: "Forbidden" }, status: :forbidden
    end
  end

  def require_employer
    require_user("employer")
  end

  def require_seeker
    require_user("seeker")
  end

  def bearer
    request.headers["Authorization"].to_s[/\ABearer (.+)\z/, 1]
  end
end
