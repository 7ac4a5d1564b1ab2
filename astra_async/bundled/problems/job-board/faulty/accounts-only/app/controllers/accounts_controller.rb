class AccountsController < ApplicationController
  def create
    user = User.new(params.permit(:name, :email, :password, :role))
    if user.save
      render json: user.slice(:id, :name, :email, :role), status: :created
    else
      render_invalid(user.errors)
    end
  end

  def login
    user = User.find_by(email: params[:email].to_s.downcase)
    if user&.authenticate(params[:password].to_s)
      render json: { token: UserToken.issue(user) }
    else
      render json: { error: "Invalid email or password" }, status: :unauthorized
    end
  end
end
